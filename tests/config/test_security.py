"""The options of access rules: what is misspelt, empty or means nothing is an error, and none changes at run time."""

import pytest

from exacta.config.errors import ConfigurationError
from exacta.config.options import DYNAMIC, SECURITY, configure
from exacta.config.security import STANDARD_AUTHORIZER, super_users

ON = {"authorizer.class.name": STANDARD_AUTHORIZER}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"authorizer.class.name": "StandardAuthorizer"}, "it is org.apache.kafka.metadata.authorizer.Standard"),
        ({"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}, "authorizer.class.name cannot be"),
        ({"authorizer.class.name": " "}, "authorizer.class.name is empty"),
        (ON | {"super.users": ""}, "super.users is empty"),
        (ON | {"super.users": "User:a;"}, "super.users names ''"),
        (ON | {"super.users": "alice"}, "super.users names 'alice', which is no user"),
        (ON | {"super.users": "User:"}, "super.users names 'User:'"),
        (ON | {"super.users": "User:a;:b"}, "super.users names ':b'"),
        (ON | {"super.users": "User:a,User:b"}, "super.users names 'User:a,User:b'"),
        (ON | {"super.users": "user:a"}, "super.users names 'user:a'"),
        (ON | {"super.users": "User:a;Group:b"}, "super.users names 'Group:b', which is no user"),
        (ON | {"allow.everyone.if.no.acl.found": ""}, "allow.everyone.if.no.acl.found is empty"),
        (ON | {"allow.everyone.if.no.acl.found": "yes"}, "must be true or false"),
        ({"super.users": "User:a"}, "super.users means nothing"),
        ({"allow.everyone.if.no.acl.found": "true"}, "allow.everyone.if.no.acl.found means nothing"),
    ],
)
def test_what_cannot_be_meant_is_an_error_of_one_line(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        configure(given)
    assert "\n" not in str(raised.value)


def test_all_of_them_together() -> None:
    found = configure(ON | {"super_users": "User:CN=a,OU=x; User:b", "allow.everyone.if.no.acl.found": True})
    assert super_users(found.super_users) == {"User:CN=a,OU=x", "User:b"}
    assert super_users("") == frozenset()


def test_none_of_them_can_be_set_at_run_time() -> None:
    assert {"authorizer.class.name", "super.users", "allow.everyone.if.no.acl.found"} < SECURITY
    assert not SECURITY & DYNAMIC
