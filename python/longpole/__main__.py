"""`python -m longpole` runs the command `longpole`."""

from longpole.cli import main

if __name__ == "__main__":
    main()
