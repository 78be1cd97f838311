"""Rules of access: what an access rule allows and denies, how rules come and go, and the keys of users."""
