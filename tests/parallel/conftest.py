import os

# JAX, the oracle, decides on its devices when it is first used
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
