// A target needs a source to have headers precompiled for it (TachoTargets.cmake).
