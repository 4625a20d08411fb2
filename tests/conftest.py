"""Settings of all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# Nothing here depends on how busy the machine is.
settings.register_profile(
    "cradle", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("cradle")
