"""The SMTP server of Python's library, which throws away what it gets. Argument: a port."""

import asyncore
import smtpd
import sys


class Sink(smtpd.SMTPServer):
    def process_message(self, *_, **__):
        return None


server = Sink(("127.0.0.1", int(sys.argv[1])), None)
asyncore.loop()
