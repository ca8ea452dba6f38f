"""What tacho holds, to compare before and after."""

import collections


class Footprint:
    """Series, entries of maps, descriptors and memory."""

    def __init__(self, tacho):
        samples = tacho.scrape()
        self.series = len(samples.values)
        self.targets = samples.get("tacho_targets")
        self.map_entries = {labels["map"]: value for labels, value in samples.all("tacho_map_entries")}
        self.listening_ports = self.map_entries.pop("listening_ports")  # of the whole machine, not of targets
        self.descriptors = collections.Counter(name.partition(":")[0] for name in tacho.descriptors())
        self.sockets = self.descriptors.pop("socket")  # our own scrapes among them, which end when they like
        self.written = tacho.written_bytes()
