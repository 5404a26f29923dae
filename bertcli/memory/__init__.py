"""What training takes of memory, by calculation; what there is; and what a process has taken."""
