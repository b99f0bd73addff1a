// SPDX-License-Identifier: Apache-2.0
/* gpushared, the node agent. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/config.h"
#include "common/xalloc.h"

static int usage(FILE *f)
{
	(void)fputs("usage: gpushared [--config FILE]\n", f);
	return f == stdout ? 0 : 2;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "", options, NULL)) != -1)
		if (opt != 'c')
			return usage(opt == 'h' ? stdout : stderr);
	return 0;
}
