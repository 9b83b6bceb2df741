/** Lists the console's pages in the order of the navigation. */
import { t } from '../strings/language.ts'
import type { IconName } from './icons.tsx'

export interface Entry {
  readonly to:
    | '/agents'
    | '/conversations'
    | '/visitors'
    | '/webhooks'
    | '/keys'
    | '/usage'
    | '/budgets'
    | '/uploads'
    | '/files'
    | '/bin'
    | '/providers'
    | '/prices'
    | '/admin'
  readonly label: string
  readonly icon: IconName
}

/** The pages in groups; a group without a name has no heading. */
export const groups = (): readonly { readonly name?: string; readonly entries: readonly Entry[] }[] => [
  {
    entries: [
      { to: '/agents', label: t('shell.agents'), icon: 'agents' },
      { to: '/conversations', label: t('shell.conversations'), icon: 'conversations' },
      { to: '/visitors', label: t('visitors.title'), icon: 'visitors' },
      { to: '/usage', label: t('shell.usage'), icon: 'usage' },
      { to: '/budgets', label: t('budgets.title'), icon: 'budgets' },
    ],
  },
  {
    name: t('shell.data'),
    entries: [
      { to: '/uploads', label: t('shell.uploads'), icon: 'uploads' },
      { to: '/files', label: t('shell.files'), icon: 'files' },
      { to: '/bin', label: t('shell.bin'), icon: 'trash' },
    ],
  },
]

export function keysAndAdministration(isAdministrator: boolean): readonly Entry[] {
  const keys: Entry = { to: '/keys', label: t('shell.keys'), icon: 'keys' }
  const webhooks: Entry = { to: '/webhooks', label: t('webhooks.title'), icon: 'webhooks' }
  const providers: Entry = { to: '/providers', label: t('shell.providers'), icon: 'models' }
  const prices: Entry = { to: '/prices', label: t('prices.title'), icon: 'prices' }
  const administration: Entry = { to: '/admin', label: t('shell.administration'), icon: 'admin' }
  return isAdministrator ? [keys, webhooks, providers, prices, administration] : [keys, webhooks]
}
