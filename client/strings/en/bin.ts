/** Contains the English strings of the page Bin. */
export const bin = {
  title: 'Bin',
  about: 'Deleted agents stay here for 30 days. Their keys do not work until you restore them.',
  restore: 'Restore',
  deleteForeverMenu: 'Delete forever…',
  deleteForever: 'Delete forever',
  empty: 'The bin is empty',
  emptyHelp: 'Agents that you delete appear here for 30 days.',
  lossOne: '{name}, its versions and its stored conversations will be deleted. This cannot be undone.',
  lossMany:
    'The selected agents, their versions and their stored conversations will be deleted. This cannot be undone.',
  deleted: 'Deleted',
  deletedForever: 'Deleted forever',
  created: 'Created',
  movedOne: 'Agent moved to the bin',
  movedMany: 'Agents moved to the bin',
  restoredOne: 'Agent restored',
  restoredMany: 'Agents restored',
  deletedOne: 'Agent deleted forever',
  deletedMany: 'Agents deleted forever',
} as const
