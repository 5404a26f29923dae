"""The commonest words of some languages in Latin script: what tells one from another in a sentence or two."""

_WORDS = {
    "en": "the and of to a in is was that it he she they his her with for as on at be by had not but "
    "from i you we my me your him this have has are were do did so no if what which who said "
    "will would all one there",
    "de": "der die das und ist nicht ein eine einen dem den des zu mit sich auf für von im auch es "
    "war er sie",
    "fr": "le la les de des du et un une est que qui dans il elle ne pas pour sur au avec ce se en était",
    "es": "el la los las de del y que en un una es no se por con para su al lo como más pero fue había",
    "it": "il la le di del della e che un una è non si per con gli i nel lo da sono come più anche era",
    "pt": "o a os as de do da dos das e que em um uma não se por com para na no ao como mais era foi",
    "nl": "de het een en van is dat niet in op te zijn met voor aan er maar ook hij ze was naar bij om",
    "sv": "och att det en ett i är som på av för inte med den till han hon var sig har från om men jag",
    "da": "og at det en et i er som på af for ikke med den til han hun var sig har fra om men jeg",
    "no": "og å det en et i er som på av for ikke med den til han hun var seg har fra om men jeg",
    "fi": "ja on ei se että oli hän ovat mutta kun niin myös joka ole kuin sen jos vain minä sitä hänen",
    "pl": "i w nie się na z że do jest to był jak ale o po co tak za od jego przez dla tym jej",
    "cs": "a se v na je že to s z do ale jak by si o co tak jeho pro byl když jsem byla po",
    "hu": "a az és hogy nem is egy volt meg ez csak de már mint el ha van még ki azt vagy kell",
    "ro": "și de la în a cu nu un o pe că este din care se pentru mai fi au era lui sau ce",
    "tr": "ve bir bu da de için ile çok ne o gibi daha ama var değil olarak sonra kadar her olan",
    "id": "yang dan di itu dengan untuk tidak ini dari dalam akan pada juga ke karena ada mereka saya",
}
FUNCTION_WORDS = {language: frozenset(words.split()) for language, words in _WORDS.items()}
"""ISO 639-1 code -> words, in small letters."""
