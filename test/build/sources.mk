# test/build: the wrappers, the library, the installation and the build itself; scripts run by test/run
