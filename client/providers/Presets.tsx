/** Offers the known providers, and a form for any other server with the OpenAI API. */
import { Text, UnstyledButton } from '@mantine/core'
import { type ProviderPreset, providerPresets } from '../../src/models/presets.ts'

/** The preset for a server that is not in the list. */
export const otherServer: ProviderPreset = {
  id: 'other',
  title: 'Other server',
  kind: 'gateway',
  baseUrl: '',
  needsKey: false,
}

const all: readonly ProviderPreset[] = [...providerPresets, otherServer]

export function findPreset(id: string | undefined): ProviderPreset | undefined {
  return all.find((preset) => preset.id === id)
}

export function Presets({ onChoose }: { readonly onChoose: (preset: ProviderPreset) => void }) {
  return (
    <ul className="presets" aria-label="Providers to add">
      {all.map((preset) => (
        <li key={preset.id}>
          <UnstyledButton className="preset" onClick={() => onChoose(preset)}>
            <Text size="sm" fw={500}>
              {preset.title}
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
  if (id === otherServer.id) return 'Any OpenAI-compatible server'
  const { host, hostname } = new URL(baseUrl)
  // The last two labels identify the service, and fit on one line.
  return needsKey ? hostname.split('.').slice(-2).join('.') : `Your own server, ${host}`
}
