// SPDX-License-Identifier: Apache-2.0
/* gpushare-probe: reads cards and their load for the agent, which can do without it when it hangs. */
#include <stdio.h>

int main(void)
{
	return 2;
}
