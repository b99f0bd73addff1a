// SPDX-License-Identifier: Apache-2.0
/* The least that a wrapper can do: becomes the program that is its first argument. */
#include <unistd.h>

int main(int argc, char **argv)
{
	if (argc > 1)
		(void)execv(argv[1], argv + 1);
	return 1;
}
