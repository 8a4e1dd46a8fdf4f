#include "tuner/worker/effort_plan.h"

namespace autotune {

EffortPlan plan_for(Effort effort) {
    switch (effort) {
        case Effort::quick:
            return {3, 100, 6, 1.2, false, 500, 1e5, 0.02, 1, 0.6, 6};
        case Effort::normal:
            return {5, 300, 8, 1.3, true, 2000, 3e5, 0.05, 2, 1.1, 24};
        case Effort::full:
            return {9, 1000, 100, 2.0, true, 4000, 60e6, 0.2, 4, 2.5, 64};
    }
    return plan_for(Effort::normal);
}

}  // namespace autotune
