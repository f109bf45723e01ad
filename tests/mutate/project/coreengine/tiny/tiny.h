#ifndef TINY_H
#define TINY_H

int tiny_is_low(int n);
int tiny_is_high(int n);
int tiny_double(int n);
int tiny_steps(int n);

#endif
