/// layernorm_backward: the gradients of rows around their means, as norm.h has it.
#include "tuner/references/norm.h"

AUTOTUNE_REFERENCE(layernorm_backward) { autotune::norm_backward(call, autotune::Centre::mean); }
