"""Backends of ggarray outside its tree: `reference` is right, `null` idle, `faulty` broken."""
