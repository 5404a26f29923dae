import pytest
import torch

from bertcli.model.pretraining import PretrainingModel

B, T, V = 3, 7, 37


@pytest.fixture
def rows():
    """ids, segments and mask of three rows of 7, 5 and 2 real tokens."""
    generator = torch.Generator().manual_seed(0)
    ids_BT = torch.randint(V, (B, T), generator=generator)
    segments_BT = (torch.arange(T) >= torch.tensor([[4], [2], [2]])).long()
    mask_BT = torch.arange(T) < torch.tensor([[7], [5], [2]])
    return ids_BT, segments_BT, mask_BT


def test_masked_positions_are_the_flat_rows_of_all_logits(model, rows):
    every = model(*rows).mlm_logits_MV
    assert every.shape == (B * T, V)
    masked_M = torch.tensor([1, 5, T + 2, 2 * T])
    torch.testing.assert_close(model(*rows, masked_M).mlm_logits_MV, every[masked_M], rtol=1e-5, atol=1e-5)


def test_only_masked_positions_reach_the_vocabulary(model, rows):
    seen = []
    model.mlm_head.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape))
    model(*rows, torch.tensor([1, 5]))
    assert seen == [(2, 15)]


@pytest.mark.parametrize(("nsp", "tokens"), [(True, B + 2), (False, 2)])
def test_only_selected_tokens_go_through_the_last_layer(odd, nsp, tokens, rows):
    model = PretrainingModel(odd, pair_head=nsp)
    seen = []
    last = model.get_submodule("body.encoder.layers.1.feed_forward")
    last.register_forward_hook(lambda _, __, output: seen.append(output.shape))
    model(*rows, torch.tensor([1, 5]))
    assert seen == [(tokens, 15)]


@pytest.mark.parametrize("extra", [1, 6, 12])
@pytest.mark.parametrize("pad_id", [0, 36])
def test_padding_changes_nothing(model, rows, extra, pad_id):
    ids_BT, segments_BT, mask_BT = rows
    real = mask_BT.flatten().nonzero()[:, 0]
    want = model(ids_BT, segments_BT, mask_BT)
    longer = torch.nn.functional.pad
    ids = longer(ids_BT.masked_fill(~mask_BT, pad_id), (0, extra), value=pad_id)
    got = model(ids, longer(segments_BT, (0, extra), value=1), longer(mask_BT, (0, extra), value=False))
    got_mlm = got.mlm_logits_MV.view(B, T + extra, V)[:, :T].flatten(0, 1)
    torch.testing.assert_close(got_mlm[real], want.mlm_logits_MV[real], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(got.pair_logits_B2, want.pair_logits_B2, rtol=1e-5, atol=1e-5)


def test_no_padding_is_the_same_as_a_mask_of_only_real_tokens(model, rows):
    ids_BT, segments_BT, mask_BT = rows
    want = model(ids_BT, segments_BT, torch.ones_like(mask_BT))
    got = model(ids_BT, segments_BT, None)
    torch.testing.assert_close(got.mlm_logits_MV, want.mlm_logits_MV, rtol=1e-5, atol=1e-5)


def test_batch_split_changes_nothing(model, rows):
    want = model(*rows)
    alone = [model(*(tensor[b : b + 1] for tensor in rows)) for b in range(B)]
    real = rows[2].flatten()
    mlm = torch.cat([output.mlm_logits_MV for output in alone])
    torch.testing.assert_close(mlm[real], want.mlm_logits_MV[real], rtol=1e-5, atol=1e-5)
    nsp = torch.cat([output.pair_logits_B2 for output in alone])
    torch.testing.assert_close(nsp, want.pair_logits_B2, rtol=1e-5, atol=1e-5)


def test_the_decoder_is_the_word_embeddings(model, rows):
    before = model(*rows).mlm_logits_MV
    with torch.no_grad():
        model.body.embeddings.word.weight[11] = 0  # id 11 stands nowhere in row 0
    after = model(*rows).mlm_logits_MV
    row_0 = slice(0, T)
    assert 11 not in rows[0][0]
    assert (after[row_0, 11] == model.mlm_head.bias[11]).all()
    others = [token for token in range(V) if token != 11]
    assert torch.equal(after[row_0][:, others], before[row_0][:, others])


def test_trace_agrees_with_forward(model, rows):
    ids_BT, segments_BT, mask_BT = rows
    states, probabilities = model.body.trace(ids_BT, segments_BT, mask_BT)
    assert [state.shape for state in states] == [(B, T, 15)] * 3
    assert [each.shape for each in probabilities] == [(B, 5, T, T)] * 2
    want = model.body(ids_BT, segments_BT, mask_BT)
    torch.testing.assert_close(states[-1][mask_BT], want[mask_BT], rtol=1e-5, atol=1e-5)


def test_bfloat16_is_close_and_goes_from_layer_to_layer(model, rows):
    want = model(*rows)
    with torch.autocast("cpu", torch.bfloat16):
        got = model(*rows)
        assert model.body(*rows).dtype == torch.bfloat16
        assert model.body.embeddings(*rows[:2]).dtype == torch.float32
    real = rows[2].flatten()
    scale = want.mlm_logits_MV.abs().max()
    assert (got.mlm_logits_MV.float() - want.mlm_logits_MV)[real].abs().max() < 0.05 * scale


def test_rows_longer_than_the_model_fail(model):
    ids_BT = torch.zeros(1, 20, dtype=torch.long)
    with pytest.raises(ValueError, match="rows of 20 tokens, but the model has 19 positions"):
        model(ids_BT, ids_BT)
