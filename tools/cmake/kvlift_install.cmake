# The package: find_package(kvlift) gives kvlift::core. Headers keep their path: #include "core/time.hpp".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS kvlift_core EXPORT kvlift ARCHIVE COMPONENT core)
install(DIRECTORY core DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kvlift COMPONENT core
        FILES_MATCHING PATTERN "*.hpp")
install(EXPORT kvlift NAMESPACE kvlift:: FILE kvliftTargets.cmake COMPONENT core
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvlift)
write_basic_package_version_file(kvliftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES tools/cmake/kvliftConfig.cmake ${PROJECT_BINARY_DIR}/kvliftConfigVersion.cmake COMPONENT core
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kvlift)
if(TARGET kvlift)
  install(TARGETS kvlift)
  install(DIRECTORY configs DESTINATION ${CMAKE_INSTALL_DATADIR}/kvlift)
endif()
