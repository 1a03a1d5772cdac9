"""What goes wrong on purpose in the plugin's broker."""
