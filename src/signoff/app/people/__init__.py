"""What people do with a run: answers, sign-offs, work from outside, passkeys."""
