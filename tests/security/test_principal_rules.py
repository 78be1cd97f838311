"""Kafka's mapping rules: what they make of a name, and which are refused; most cases are those of Kafka's own tests."""

import pytest
from cryptography.x509.name import NameAttribute
from cryptography.x509.oid import NameOID

from exacta.security.distinguished_names import written
from exacta.security.principal_rules import PrincipalRules, RuleError
from tests.security.test_distinguished_names import name as encoded

SEVERAL = ", ".join(
    [
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    ]
)


@pytest.mark.parametrize(
    ("rules", "owner", "name"),
    [
        (SEVERAL, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        (SEVERAL, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        (SEVERAL, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        (SEVERAL, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        (SEVERAL, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
        (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"CN=Tkac\, Adam,OU=ITZ,DC=geodis,DC=cz", r"Tkac\, Adam"),
        ("RULE:.*/x/", "abc", "xx"),
        ("RULE:a/x/,DEFAULT", "aba", "aba"),
        ("RULE:[ab]*/$0/U", "ab", "AB"),
        (r"RULE:(a)(b)/$2$1$9\$1\\/", "ab", r"ba$9$1\\"[:-1]),
        ("RULE:(a)(b)/$12/", "ab", "a2"),
        ("RULE:(?P<first>a)b/${first}/", "ab", "a"),
        ("RULE:(a)|(b)/<$1$2>/", "b", "<b>"),
        (r"RULE:a\/b/x\/y/", "a/b", "x/y"),
    ],
)
def test_a_name_is_mapped_by_the_first_rule_that_fits(rules: str, owner: str, name: str) -> None:
    assert PrincipalRules(rules).name_of(owner) == name


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("RULE://", ["RULE://"]),
        ("RULE:/.*/L", ["RULE:/.*/L"]),
        ("  RULE:// ,  DEFAULT  ", ["RULE://", "DEFAULT"]),
        ("  RULE:   /     / ,  DEFAULT  ", ["RULE:   /     /", "DEFAULT"]),
        (
            "  RULE:([A-Z]*)/$1/U   ,RULE:([a-z]+)/$1/,   DEFAULT  ",
            ["RULE:([A-Z]*)/$1/U", "RULE:([a-z]+)/$1/", "DEFAULT"],
        ),
        (",,RULE://,,,DEFAULT,,", ["RULE://", "DEFAULT"]),
        (r"RULE:\/\\\(\)\n\t/\/\//", [r"RULE:\/\\\(\)\n\t/\/\//"]),
        (r"RULE:\**\/+/*/L,RULE:\/*\**/**/", [r"RULE:\**\/+/*/L", r"RULE:\/*\**/**/"]),
        (
            r"RULE:,RULE:,/,RULE:,\//U,RULE:,/RULE:,/,RULE:,RULE:,/L,RULE:,/L,RULE:, DEFAULT, /DEFAULT/,DEFAULT",
            [
                r"RULE:,RULE:,/,RULE:,\//U",
                "RULE:,/RULE:,/",
                "RULE:,RULE:,/L,RULE:,/L",
                "RULE:, DEFAULT, /DEFAULT/",
                "DEFAULT",
            ],
        ),
    ],
)
def test_rules_are_told_apart_as_in_kafka(text: str, rules: list[str]) -> None:
    assert [each.text for each in PrincipalRules(text).rules] == rules


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no rule"),
        (" , ,", "there is no rule"),
        ("default", "none begins at 'default'"),
        ("DEFAULT/L", "none begins at 'DEFAULT/L'"),
        ("rule:a/b/", "none begins at 'rule:a/b/'"),
        ("RULE:CN=(.*?),OU=ServiceUsers.*/$1", "a rule is RULE:pattern/replacement/, maybe with L or U behind it, not"),
        ("RULE:a/b/L/U", "maybe with L or U behind it"),
        ("RULE:a/L", "maybe with L or U behind it"),
        ("RULE:a/LU", "maybe with L or U behind it"),
        ("RULE:a/b/LU", "maybe with L or U behind it"),
        ("RULE:(a/b/", "the pattern '(a' cannot be read"),
        ("RULE:(?=a)a/b/", "the pattern '(?=a)a' cannot be read"),
        ("RULE:a/$1/", "names the group 1, and its pattern has none"),
        ("RULE:(a)/${b}/", "names the group b, which its pattern has not"),
        ("RULE:(a)/$/", "has a $ that stands for nothing"),
    ],
)
def test_a_rule_that_means_nothing_is_refused(text: str, message: str) -> None:
    with pytest.raises(RuleError) as refused:
        PrincipalRules(text)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "owner", "message"),
    [
        ("RULE:^CN=a$/a/", "CN=b", "no rule of ssl.principal.mapping.rules fits the owner of its certificate, 'CN=b'"),
        ("DEFAULT", "", "has a name by ssl.principal.mapping.rules that is empty"),
        ("DEFAULT", "CN=a\nb", r"the owner of its certificate, 'CN=a\nb', has a name by ssl."),
        ("RULE:^CN=(.*)$/$1/", "CN=alice\n", "no rule of ssl.principal.mapping.rules fits"),
        ("RULE:(?s)^CN=(.*)$/$1/", "CN=alice\u2028", "that cannot be shown on one line"),
        ("RULE:^CN=(.*)$/$1/", "CN=ANONYMOUS", "that stands for clients that have not logged in"),
    ],
)
def test_a_name_without_a_principal_is_refused(rules: str, owner: str, message: str) -> None:
    with pytest.raises(ValueError, match="certificate") as refused:
        PrincipalRules(rules).name_of(owner)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "common_name", "name"),
    [
        ("RULE:^CN=([^,]+),OU=Admins$/$1/,DEFAULT", "root,OU=Admins", r"CN=root\,OU\=Admins,OU=Users"),
        ("RULE:^CN=([a-z]+),OU=Users$/$1/,DEFAULT", "root,OU=Users", r"CN=root\,OU\=Users,OU=Users"),
        ("RULE:^CN=(.*?),OU=Users$/$1/", "root,OU=Users", r"root\,OU\=Users"),
        ("RULE:^CN=(.*),OU=Users$/$1/", "a;User:root", r"a\;User:root"),
        ("RULE:^CN=(.*?),.*$/$1/", "root+OU=Admins", r"root\+OU\=Admins"),
    ],
)
def test_a_comma_in_a_name_makes_no_part_of_its_own(rules: str, common_name: str, name: str) -> None:
    assert PrincipalRules(rules).name_of(written(certified(common_name))) == name


@pytest.mark.parametrize("common_name", ["root\n", "root\nCN=x", "a\r\nb", "root\u2028", "root\0", "\u202eroot"])
@pytest.mark.parametrize("rules", ["DEFAULT", "RULE:^CN=(?s:(.*?)),OU=Users$/$1/"])
def test_a_name_of_several_lines_or_that_cannot_be_shown_is_nobodys(rules: str, common_name: str) -> None:
    try:
        found = PrincipalRules(rules).name_of(written(certified(common_name)))
    except ValueError:
        return
    assert found.isprintable()
    assert "\\" in found, "what cannot be shown is written with escapes, as by Java"


def certified(common_name: str) -> bytes:
    """Return the name in the certificate of somebody whose authority puts them into OU=Users."""
    return encoded(
        NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "Users"), NameAttribute(NameOID.COMMON_NAME, common_name)
    )


def test_a_long_name_is_matched_in_linear_time() -> None:
    assert PrincipalRules("RULE:^((a|a)*)*$/x/,RULE:.+/y/").name_of("a" * 50_000 + "!") == "y"
