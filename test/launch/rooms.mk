# test/launch: see house.md; its owner lists the sources here
