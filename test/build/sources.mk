# test/build: scripts that test wrappers, library, installation, build and docs; run by test/run
