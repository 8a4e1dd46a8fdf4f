/// rmsnorm_backward: the gradients of rows around 0, as norm.h has it.
#include "tuner/references/norm.h"

AUTOTUNE_REFERENCE(rmsnorm_backward) { autotune::norm_backward(call, autotune::Centre::zero); }
