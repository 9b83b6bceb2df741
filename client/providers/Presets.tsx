/** Offers the known providers, and a form for any other server with the OpenAI API. */

import { Text, UnstyledButton } from '@mantine/core'
import { type ProviderPreset, providerPresets } from '../../src/models/presets.ts'
import { t } from '../strings/language.ts'

/** The preset for a server that is not in the list. */
export const otherServer: ProviderPreset = {
  id: 'other',
  title: '',
  kind: 'gateway',
  baseUrl: '',
  needsKey: false,
}

const all: readonly ProviderPreset[] = [...providerPresets, otherServer]

export function findPreset(id: string | undefined): ProviderPreset | undefined {
  return all.find((preset) => preset.id === id)
}

/**
 * Returns a preset's title. Only the preset for other servers is translated, because service names are the
 * same in all languages.
 */
function titleOf({ id, title }: ProviderPreset): string {
  return id === otherServer.id ? t('providers.otherServer') : title
}

export function Presets({ onChoose }: { readonly onChoose: (preset: ProviderPreset) => void }) {
  return (
    <ul className="presets" aria-label={t('providers.toAdd')}>
      {all.map((preset) => (
        <li key={preset.id}>
          <UnstyledButton className="preset" onClick={() => onChoose(preset)}>
            <Text size="sm" fw={500}>
              {titleOf(preset)}
            </Text>
            <Text size="xs" c="dimmed">
              {describe(preset)}
            </Text>
          </UnstyledButton>
        </li>
      ))}
    </ul>
  )
}

function describe({ id, baseUrl, needsKey }: ProviderPreset): string {
  if (id === otherServer.id) return t('providers.otherAbout')
  const { host, hostname } = new URL(baseUrl)
  // The last two labels of the host name identify the service, and fit on one line.
  return needsKey ? hostname.split('.').slice(-2).join('.') : t('providers.ownServer', { host })
}
