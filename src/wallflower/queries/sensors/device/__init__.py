"""What a device does to a reading before it leaves: clip it to a public box, and add exact noise on a public grid."""
