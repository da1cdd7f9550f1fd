"""`python -m longpole` is the command `longpole`."""

from longpole.cli import main

if __name__ == "__main__":
    main()
