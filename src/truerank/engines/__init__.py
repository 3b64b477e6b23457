"""Tables of users and files of item factors in, tables of ranks and their estimates out, computed on other machines."""
