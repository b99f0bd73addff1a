// SPDX-License-Identifier: Apache-2.0
/* The empty next runtime of the benchmarks: a start and an end. */
int main(void)
{
	return 0;
}
