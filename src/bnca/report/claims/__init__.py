"""The paper's claims, each judged by code from rows."""
