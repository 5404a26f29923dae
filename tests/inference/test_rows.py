from bertcli.inference.predict import SORTED_BATCHES, in_similar_lengths
from bertcli.tokenizer.frame import Row


def encode(lengths):
    return [Row([7] * length, length) for length in lengths]


def test_results_come_in_the_order_of_the_inputs_from_batches_of_similar_length():
    lengths = [5, 1, 4, 2, 3, 9, 8]
    batches = []

    def compute(rows):
        batches.append([len(row.ids) for row in rows])
        return batches[-1]

    assert list(in_similar_lengths(lengths, 2, encode, compute)) == [(length, length) for length in lengths]
    assert batches == [[1, 2], [3, 4], [5, 8], [9]]


def test_only_a_bounded_number_of_inputs_is_read_ahead():
    read = 0

    def endless():
        nonlocal read
        while True:
            read += 1
            yield 3

    results = in_similar_lengths(endless(), 4, encode, lambda rows: [len(row.ids) for row in rows])
    assert [next(results) for _ in range(100)] == [(3, 3)] * 100
    assert read <= 100 + 4 * SORTED_BATCHES


def test_no_input_gives_no_result():
    assert list(in_similar_lengths([], 4, encode, lambda rows: rows)) == []
