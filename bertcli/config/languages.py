"""A language code or name -> its ISO 639-1 code, if it has one."""

import re

_TABLE = (
    "aa:aar:Afar ab:abk:Abkhazian ae:ave:Avestan af:afr:Afrikaans ak:aka:Akan am:amh:Amharic "
    "an:arg:Aragonese ar:ara:Arabic:العربية:arb as:asm:Assamese av:ava:Avaric ay:aym:Aymara "
    "az:aze:Azerbaijani ba:bak:Bashkir be:bel:Belarusian bg:bul:Bulgarian bi:bis:Bislama bm:bam:Bambara "
    "bn:ben:Bengali bo:bod:tib:Tibetan br:bre:Breton bs:bos:Bosnian ca:cat:Catalan:català ce:che:Chechen "
    "ch:cha:Chamorro co:cos:Corsican cr:cre:Cree cs:ces:cze:Czech:čeština cu:chu:Church_Slavic "
    "cv:chv:Chuvash cy:cym:wel:Welsh:Cymraeg da:dan:Danish:dansk de:deu:ger:German:Deutsch dv:div:Divehi "
    "dz:dzo:Dzongkha ee:ewe:Ewe el:ell:gre:Greek:ελληνικά en:eng:English eo:epo:Esperanto "
    "es:spa:Spanish:español et:est:Estonian:ekk eu:eus:baq:Basque:euskara fa:fas:per:Persian:Farsi:pes "
    "ff:ful:Fulah fi:fin:Finnish:suomi fj:fij:Fijian fo:fao:Faroese fr:fra:fre:French:français "
    "fy:fry:Frisian ga:gle:Irish:Gaeilge gd:gla:Scottish_Gaelic gl:glg:Galician gn:grn:Guarani "
    "gu:guj:Gujarati gv:glv:Manx ha:hau:Hausa he:heb:Hebrew hi:hin:Hindi:हिन्दी ho:hmo:Hiri_Motu "
    "hr:hrv:Croatian ht:hat:Haitian hu:hun:Hungarian:magyar hy:hye:arm:Armenian hz:her:Herero "
    "ia:ina:Interlingua id:ind:Indonesian:bahasa_Indonesia ie:ile:Interlingue ig:ibo:Igbo "
    "ii:iii:Sichuan_Yi ik:ipk:Inupiaq io:ido:Ido is:isl:ice:Icelandic it:ita:Italian:italiano "
    "iu:iku:Inuktitut ja:jpn:Japanese:日本語 jv:jav:Javanese ka:kat:geo:Georgian kg:kon:Kongo ki:kik:Kikuyu "
    "kj:kua:Kuanyama kk:kaz:Kazakh kl:kal:Kalaallisut km:khm:Khmer kn:kan:Kannada ko:kor:Korean:한국어 "
    "kr:kau:Kanuri ks:kas:Kashmiri ku:kur:Kurdish kv:kom:Komi kw:cor:Cornish ky:kir:Kyrgyz la:lat:Latin "
    "lb:ltz:Luxembourgish lg:lug:Ganda li:lim:Limburgish ln:lin:Lingala lo:lao:Lao lt:lit:Lithuanian "
    "lu:lub:Luba-Katanga lv:lav:Latvian:lvs mg:mlg:Malagasy mh:mah:Marshallese mi:mri:mao:Maori "
    "mk:mkd:mac:Macedonian ml:mal:Malayalam mn:mon:Mongolian mr:mar:Marathi ms:msa:may:Malay:zsm "
    "mt:mlt:Maltese my:mya:bur:Burmese:Myanmar na:nau:Nauru nb:nob:Bokmål nd:nde:North_Ndebele "
    "ne:nep:Nepali:npi ng:ndo:Ndonga nl:nld:dut:Dutch:Nederlands nn:nno:Nynorsk no:nor:Norwegian:norsk "
    "nr:nbl:South_Ndebele nv:nav:Navajo ny:nya:Chichewa oc:oci:Occitan oj:oji:Ojibwa om:orm:Oromo "
    "or:ori:Odia:ory os:oss:Ossetian pa:pan:Punjabi pi:pli:Pali pl:pol:Polish:polski ps:pus:Pashto "
    "pt:por:Portuguese:português qu:que:Quechua rm:roh:Romansh rn:run:Rundi ro:ron:rum:Romanian:română "
    "ru:rus:Russian:русский rw:kin:Kinyarwanda sa:san:Sanskrit sc:srd:Sardinian sd:snd:Sindhi "
    "se:sme:Northern_Sami sg:sag:Sango sh:hbs:Serbo-Croatian si:sin:Sinhala sk:slk:slo:Slovak "
    "sl:slv:Slovenian sm:smo:Samoan sn:sna:Shona so:som:Somali sq:sqi:alb:Albanian sr:srp:Serbian "
    "ss:ssw:Swati st:sot:Southern_Sotho su:sun:Sundanese sv:swe:Swedish:svenska sw:swa:Swahili:swh "
    "ta:tam:Tamil te:tel:Telugu tg:tgk:Tajik th:tha:Thai:ไทย ti:tir:Tigrinya tk:tuk:Turkmen "
    "tl:tgl:Tagalog:Filipino tn:tsn:Tswana to:ton:Tonga tr:tur:Turkish:Türkçe ts:tso:Tsonga tt:tat:Tatar "
    "tw:twi:Twi ty:tah:Tahitian ug:uig:Uyghur uk:ukr:Ukrainian:українська ur:urd:Urdu uz:uzb:Uzbek "
    "ve:ven:Venda vi:vie:Vietnamese:tiếng_Việt vo:vol:Volapük wa:wln:Walloon wo:wol:Wolof xh:xho:Xhosa "
    "yi:yid:Yiddish yo:yor:Yoruba za:zha:Zhuang zh:zho:chi:Chinese:Mandarin:cmn zu:zul:Zulu "
)
"""ISO 639-1, then other codes (ISO 639-3 and 639-2, also of its main variety) and names, `_` for a blank."""
_CODES = {
    name.replace("_", " ").casefold(): entry.partition(":")[0]
    for entry in _TABLE.split()
    for name in entry.split(":")
}
_TWO_LETTERS = frozenset(_CODES.values())
_CODE = re.compile("[a-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


def language_code(language: str) -> str:
    """The code that bertcli uses: `deu`, `de-AT` and `DE` give de; `nds` has no shorter one.

    Raises `ValueError` if `language` is not a code; the message holds the right code if it is known.
    """
    main = re.split("[-_]", language.lower())[0]
    if _CODE.fullmatch(language.lower()) and (len(main) == 3 or main in _TWO_LETTERS):
        return _CODES.get(main, main)
    known = _CODES.get(language.replace("_", " ").strip().casefold())
    if known is not None:
        raise ValueError(f"{language!r} is a language's name; its code is expected: write {known}")
    raise ValueError(
        f"{language!r} is not an ISO 639 language code; expected 2 or 3 small letters: en, de, fr, hi, sw"
    )
