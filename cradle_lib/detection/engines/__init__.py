"""The engines that ship."""
