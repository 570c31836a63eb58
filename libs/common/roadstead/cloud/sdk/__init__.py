"""The only package that knows openstacksdk: the sender to real clouds, and an administrator's way in for registration."""

from roadstead.cloud.sdk.administrator import SdkAdministrator
from roadstead.cloud.sdk.sender import SdkSender

__all__ = ["SdkAdministrator", "SdkSender"]
