/** Lists the console's pages in the order of the navigation. */
import type { IconName } from './icons.tsx'

export interface Entry {
  readonly to:
    | '/agents'
    | '/conversations'
    | '/keys'
    | '/usage'
    | '/uploads'
    | '/files'
    | '/bin'
    | '/providers'
    | '/admin'
  readonly label: string
  readonly icon: IconName
}

/** The pages in groups; a group without a name has no heading. */
export const groups: readonly { readonly name?: string; readonly entries: readonly Entry[] }[] = [
  {
    entries: [
      { to: '/agents', label: 'Agents', icon: 'agents' },
      { to: '/conversations', label: 'Conversations', icon: 'conversations' },
      { to: '/usage', label: 'Usage', icon: 'usage' },
    ],
  },
  {
    name: 'Data',
    entries: [
      { to: '/uploads', label: 'Uploads', icon: 'uploads' },
      { to: '/files', label: 'Files', icon: 'files' },
      { to: '/bin', label: 'Bin', icon: 'trash' },
    ],
  },
]

export const entries: readonly Entry[] = groups.flatMap((group) => group.entries)

export function keysAndAdministration(isAdministrator: boolean): readonly Entry[] {
  const keys: Entry = { to: '/keys', label: 'Keys', icon: 'keys' }
  const providers: Entry = { to: '/providers', label: 'Providers', icon: 'models' }
  const administration: Entry = { to: '/admin', label: 'Administration', icon: 'admin' }
  return isAdministrator ? [keys, providers, administration] : [keys]
}
