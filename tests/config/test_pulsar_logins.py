"""The options for logins by Pulsar's names: each is honoured, or refused by a line that says what to do."""

from typing import Any

import pytest

from exacta.config import pulsar_logins
from exacta.config.configuration import Configuration
from exacta.config.errors import ConfigurationError
from exacta.config.options import changed, configure, options
from exacta.config.pulsar_logins import METHODS, methods
from exacta.config.security import STANDARD_AUTHORIZER, all_super_users

TOKEN, BASIC, TLS = METHODS
KEY = "data:;base64,c2VjcmV0"


def on(*providers: str, **more: Any) -> dict[str, Any]:
    return {"authenticationEnabled": True, "authenticationProviders": ",".join(providers), **more}


def test_the_methods_are_those_of_the_classes() -> None:
    configuration = configure(on(TOKEN, f" {BASIC}", TLS, tokenSecretKey=KEY))
    assert methods(configuration) == {"token", "basic", "tls"}
    assert methods(Configuration()) == frozenset()
    assert changed(configuration)["tokenSecretKey"] == "(hidden)"


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"authenticationEnabled": True}, "need each other"),
        ({"authenticationProviders": BASIC}, "need each other"),
        ({"authenticationEnabled": False, "authenticationProviders": BASIC}, "need each other"),
        (on(TOKEN), "set tokenSecretKey or tokenPublicKey"),
        (on(TOKEN, tokenSecretKey=KEY, tokenPublicKey=KEY), "not both"),
        (on(BASIC, tokenSecretKey=KEY), "tokenSecretKey means nothing"),
        ({"tokenPublicKey": KEY}, "tokenPublicKey means nothing"),
        (on(BASIC + "s"), "did you mean"),
        (on("com.example.Mine"), "there is no 'com.example.Mine' here"),
        (on(TOKEN, "", tokenSecretKey=KEY), "there is no ''"),
        (on(TOKEN, tokenSecretKey=KEY, tokenAudienceClaim="for"), "needs tokenAudience"),
        (on(TOKEN, tokenSecretKey=KEY, tokenPublicAlg="none"), "tokenPublicAlg cannot be 'none'"),
        (on(TOKEN, tokenSecretKey=KEY, tokenPublicAlg="HS256"), "tokenPublicAlg cannot be 'HS256'"),
        ({"tokenSecretKeys": KEY}, "did you mean tokenSecretKey"),
        ({"superUserRoles": "admin"}, "superUserRoles means nothing"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        configure(given)


@pytest.mark.parametrize("name", [each.name for each in options().values() if each.is_security and each.type is str])
def test_an_option_that_is_empty_is_an_error(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is empty"):
        configure({name: " "})


@pytest.mark.parametrize("name", pulsar_logins.REFUSED)
def test_options_that_are_not_served_say_what_to_do(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} is an option of Apache Pulsar that is not here: "):
        configure({name: "x"})


def test_super_users_have_two_names() -> None:
    given = {"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a", "superUserRoles": "b, c"}
    assert all_super_users(configure(given)) == {"User:a", "User:b", "User:c"}
