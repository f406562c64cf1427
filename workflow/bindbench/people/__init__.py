"""People in photographs: reading pictures, masks, faces, poses, and who is where."""
