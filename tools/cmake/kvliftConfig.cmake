include("${CMAKE_CURRENT_LIST_DIR}/kvliftTargets.cmake")
