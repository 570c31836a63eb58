"""Who the API is in the cloud; the identity service, Neutron and Barbican are all reached in this user's name unless a caller's token is used."""

from roadstead.cloud.sdk.service_user import ServiceUser, service_session

__all__ = ["ServiceUser", "service_session"]
