"""The life of a product: node, record, schedule, execute, in this order."""
