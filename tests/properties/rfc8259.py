"""JSON texts that RFC 8259 allows and forbids, by the section that says so.

Each is a value: it may stand alone, in an array, or as the value of a member.

Those without blanks and quotes stand in one text, to be split.
"""

ALLOWED = {
    "2 structural characters": [
        *b"[] {} [[]] [[],[[]]] [1,2,3]".split(),
        b"[ ]",
        b"{ }",
        b'{"a":{}}',
        b'{"a":1,"b":[2,{"c":3}]}',
    ],
    "2 white space": [
        b" 1",
        b"1 ",
        b"\t1",
        b"\n1\n",
        b"\r1\r\n",
        b"[ 1 , 2 ]",
        b'{ "a" : 1 }',
    ],
    "3 literal names": [
        *b"true false null [true,false,null]".split(),
    ],
    "4 objects: any text is a name, twice too": [
        b'{"":0}',
        b'{"\\u0000":0}',
        b'{"a":1,"a":2}',
        b'{"a":1,"a":1}',
        b'{"\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87":"\xd0\xb7\xd0\xbd\xd0\xb0\xd1\x87\xd0\xb5\xd0\xbd\xd0\xb8\xd0\xb5"}',
    ],
    "6 numbers": [
        *(
            b"0 -0 1 -1 -123 20 1.0 0.1 -0.1 -0.0 123.456789 1e1 1E1 0e1 0e+1 0E-1 1e+2 "
            b"1e-2 1E+22 1.5e2 123.456e78 1e001 -1e-1 "
            b"0.00000000000000000000000000000000000000000001 "
            b"123456789012345678901234567890 -123123123123123123123123123123 "
            b"3.141592653589793238462643383279502884197 1e400 -1e400 1e-400 "
            b"1e99999999999999999999 9223372036854775807 -9223372036854775808 "
            b"18446744073709551616"
        ).split(),
    ],
    "7 strings": [
        b'""',
        b'"a"',
        b'" "',
        b'"/"',
        b'"\\""',
        b'"\\\\"',
        b'"\\/"',
        b'"\\b\\f\\n\\r\\t"',
        b'"\\u0061\\u30af\\u30EA"',
        b'"\\u0000"',
        b'"\\u001F"',
        b'"\\u0012"',
        b'"\\uFFFF"',
        b'"\\ud83d\\ude39"',
        b'"\\uD834\\uDd1e"',
        b'"\\uDBFF\\uDFFF"',
        b'"\\\\u0000"',
        b'"\\\\n"',
        b'"\x7f"',
        b'"a/*b*/c"',
        b'"[{,:"',
    ],
    "8.1 UTF-8": [
        b'"\xc3\xa9 \xe2\x98\x83 \xe2\x82\xac"',
        b'"\xf0\x9f\x98\xb9 \xf4\x8f\xbf\xbf"',
        b'"\xe2\x80\xa8\xe2\x80\xa9"',
        b'"\xef\xbb\xbf inside"',
        b'"\xc2\x80 \xef\xbf\xbf \xef\xb7\x90"',
    ],
}

FORBIDDEN = {
    "2 structural characters": [
        *(
            b"[ ] { } [1 [1, [1,] [,] [,1] [1,,2] [1]] [1:2] [1;2] [[1] [{} {] [} 1] 1, () "
            b"<null> [<null>] * [*] : ,"
        ).split(),
        b"[1 2]",
        b'["a"',
        b'["a"}',
        b"1 2",
        b"",
    ],
    "2 white space": [
        b"\x0c1",
        b"\x0b1",
        b"[\x0c]",
        b"[\x0b1]",
        b"\xc2\xa01",
        b"\xe2\x81\xa01",
        b"[\xc2\x851]",
        b"\x001",
        b"1\x00",
    ],
    "2 no comments": [
        *b"/**/1 1/**/ [1/*a*/]".split(),
        b"//\n1",
        b"# a\n1",
        b'{"a":/**/1}',
    ],
    "3 literal names": [
        *b"True False Null TRUE tru nul truth nulll None undefined a [a] [tru]".split(),
    ],
    "4 objects": [
        *b"{1:1} {a:1} {:1} {[]:1} {null:null}".split(),
        b"{'a':1}",
        b'{"a"}',
        b'{"a",1}',
        b'{"a" 1}',
        b'{"a":}',
        b'{"a"::1}',
        b'{"a":1,}',
        b'{,"a":1}',
        b'{"a":1,,"b":2}',
        b'{"a":1 "b":2}',
        b'{"a":1;"b":2}',
        b'{"a":1',
        b'{"a":1]',
        b'{"a":1,"b"}',
        b'{"a":1}}',
        b'{"a":"b",null:1}',
        b'{"a":1}"',
    ],
    "6 numbers": [
        *(
            b"+1 ++1 - --1 01 -01 00 -00.0 012 1. -1. .1 -.1 1.e1 .e1 0.e1 1e 1e+ 1e- 1E "
            b"0.3e 1.0e 1eE2 1e1.5 1.2.3 1.2a 1a -a 0x1 0x 1_000 1,000.0e Infinity "
            b"-Infinity +Infinity NaN -NaN nan inf -inf 1+2 0e+-1"
        ).split(),
        b"- 1",
        b"1 000",
        b"\xef\xbc\x91",
        b"1\xef\xbc\x91",
    ],
    "7 strings": [
        b'"',
        b'"a',
        b"'a'",
        b'"a"b"',
        b'"\\"',
        b'"\\\\\\"',
        b'"\\a"',
        b'"\\x41"',
        b'"\\\'"',
        b'"\\0"',
        b'"\\ "',
        b'"\\\xf0\x9f\x8c\x80"',
        b'"\\u"',
        b'"\\u1"',
        b'"\\u00A"',
        b'"\\u00g0"',
        b'"\\U0041"',
        b'"\\uD834\\u1"',
        b'"\x00"',
        b'"\x1f"',
        b'"a\tb"',
        b'"a\nb"',
        b'"a\rb"',
        b'{"a\tb":1}',
        b'{"\\a":1}',
        b'{"\\u00g0":1}',
    ],
    "8.1 UTF-8": [
        b'"\xff"',
        b'"\xe9"',
        b'"\x81"',
        b'"\xc0\xaf"',
        b'"\xe0\x80"',
        b'"\xed\xa0\x80"',
        b'"\xf4\xbf\xbf\xbf"',
        b'"\xfc\x80\x80\x80\x80\x80"',
        b'{"\xe9":1}',
        b"[\xff]",
        b"\xe5",
    ],
}
