#include "run.h"

int main(int argc, char** argv) {
  return tacho::run_program(argc, argv);
}
