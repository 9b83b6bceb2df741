/** Shows the form that adds or changes a provider, and tests the provider before it is saved. */

import {
  Alert,
  Anchor,
  Button,
  Checkbox,
  Group,
  NativeSelect,
  PasswordInput,
  Text,
  TextInput,
} from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { ProviderPreset } from '../../src/models/presets.ts'
import { api } from '../api.ts'
import { DialogForm } from '../components/Dialog.tsx'
import { RequestId } from '../components/RequestId.tsx'
import { problemOf, toFailure } from '../failure.ts'
import { showDone } from '../shell/toast.tsx'
import type { PlainKey } from '../strings/catalogue.ts'
import { t } from '../strings/language.ts'
import { otherServer } from './Presets.tsx'
import { type Provider, type ProviderTestInput, useRefreshProviders } from './queries.ts'
import { TestResult } from './TestResult.tsx'

interface ProviderFormProps {
  /** Initial values for a new provider. */
  readonly preset: ProviderPreset
  /** The provider to change; undefined for a new one. */
  readonly provider?: Provider
  readonly takenNames: readonly string[]
  readonly onClose: () => void
}

export function ProviderForm({ preset, provider, takenNames, onClose }: ProviderFormProps) {
  const fields = useFields(preset, provider, takenNames)
  const [invalid, setInvalid] = useState<string>()
  const refresh = useRefreshProviders()
  const test = useMutation({
    mutationFn: () => api.providers.test.mutate(fields.input),
    onError: (error) => setInvalid(toFailure(error).param),
  })
  const change = (set: () => void) => {
    set()
    setInvalid(undefined)
    test.reset()
  }
  const save = async () => {
    try {
      if (provider === undefined) await api.providers.create.mutate(fields.input)
      else await api.providers.update.mutate(fields.input)
    } catch (error) {
      setInvalid(toFailure(error).param)
      throw error
    }
    await refresh()
    showDone(provider === undefined ? t('providers.added') : t('providers.saved'))
    onClose()
  }
  const isReady = fields.name !== '' && fields.baseUrl !== ''
  const testProblem = problemOf(test.error)
  const hint = hints[preset.id]
  return (
    <DialogForm
      onSubmit={save}
      onCancel={onClose}
      action={provider === undefined ? t('providers.add') : t('common.save')}
      isReady={isReady}
    >
      {hint === undefined ? null : (
        <Text size="sm" c="dimmed">
          {t(hint)}
        </Text>
      )}
      {provider === undefined ? (
        <TextInput
          label={t('providers.name')}
          description={t('providers.nameHelp', { example: `${fields.name || 'name'}/model` })}
          required
          maxLength={32}
          autoComplete="off"
          spellCheck={false}
          error={invalid === 'name'}
          value={fields.name}
          onChange={({ currentTarget: { value } }) => change(() => fields.setName(value))}
        />
      ) : null}
      <TextInput
        label={t('providers.baseUrl')}
        description={preset.id === otherServer.id ? t('providers.baseUrlHelp') : undefined}
        placeholder="https://api.example.com/v1"
        required
        type="url"
        autoComplete="off"
        spellCheck={false}
        data-autofocus={preset.id === otherServer.id && provider === undefined ? true : undefined}
        error={invalid === 'base_url'}
        value={fields.baseUrl}
        onChange={({ currentTarget: { value } }) => change(() => fields.setBaseUrl(value))}
      />
      {preset.id === otherServer.id ? (
        <NativeSelect
          label={t('providers.server')}
          data={kinds}
          value={fields.kind}
          onChange={({ currentTarget: { value } }) =>
            change(() => fields.setKind(value === 'local' ? 'local' : 'gateway'))
          }
        />
      ) : null}
      <KeyField
        preset={preset}
        provider={provider}
        fields={fields}
        isInvalid={invalid === 'api_key'}
        change={change}
      />
      <Group gap="sm">
        <Button variant="default" disabled={!isReady} loading={test.isPending} onClick={() => test.mutate()}>
          {t('providers.test')}
        </Button>
        <Text size="xs" c="dimmed">
          {t('providers.testHelp')}
        </Text>
      </Group>
      {testProblem === undefined ? null : (
        <Alert color="red" role="alert">
          {testProblem}
          <RequestId error={test.error} />
        </Alert>
      )}
      {test.data === undefined ? null : <TestResult result={test.data} />}
    </DialogForm>
  )
}

/** Advice for individual presets, by preset id. */
const hints: Readonly<Record<string, PlainKey>> = {
  openrouter: 'providers.openrouterHint',
  ollama: 'providers.ollamaHint',
  vllm: 'providers.apiKeyHint',
  'llama-server': 'providers.apiKeyHint',
}

const kinds = [
  { value: 'gateway', label: t('providers.openAiApi') },
  { value: 'local', label: t('providers.ollamaApi') },
]

interface KeyFieldProps extends Pick<ProviderFormProps, 'preset' | 'provider'> {
  readonly fields: ReturnType<typeof useFields>
  readonly isInvalid: boolean
  readonly change: (set: () => void) => void
}

function KeyField({ preset, provider, fields, isInvalid, change }: KeyFieldProps) {
  const hasStoredKey = provider?.has_key === true
  const { needsKey, keysUrl } = preset
  const ofNewKey = needsKey ? undefined : t('providers.noKeyNeeded')
  return (
    <div>
      <PasswordInput
        label={t('providers.apiKey')}
        description={hasStoredKey ? describeStoredKey(provider) : ofNewKey}
        required={needsKey && !hasStoredKey}
        disabled={fields.removesKey}
        data-autofocus={needsKey && provider === undefined ? true : undefined}
        maxLength={1000}
        // Prevents password managers from storing the key as the user's password.
        autoComplete="new-password"
        spellCheck={false}
        visibilityToggleButtonProps={{ 'aria-label': t('providers.showKey') }}
        error={isInvalid}
        value={fields.apiKey}
        onChange={({ currentTarget: { value } }) => change(() => fields.setApiKey(value))}
      />
      {keysUrl === undefined || provider !== undefined ? null : (
        <Text size="xs" mt={6}>
          <Anchor href={keysUrl} target="_blank" rel="noreferrer" inherit>
            {t('providers.createKeyAt', { name: preset.title })}
          </Anchor>
        </Text>
      )}
      {hasStoredKey ? (
        <Checkbox
          mt="xs"
          size="xs"
          label={t('providers.removeKey')}
          checked={fields.removesKey}
          onChange={({ currentTarget: { checked } }) => change(() => fields.setRemovesKey(checked))}
        />
      ) : null}
    </div>
  )
}

function describeStoredKey({ key_hint: hint }: Provider): string {
  return hint === null ? t('providers.keepKey') : t('providers.keepKeyHint', { hint })
}

function useFields(preset: ProviderPreset, provider: Provider | undefined, takenNames: readonly string[]) {
  const isStored = provider !== undefined
  const [name, setName] = useState(() => provider?.name ?? suggestName(preset, takenNames))
  const [baseUrl, setBaseUrl] = useState(provider?.base_url ?? preset.baseUrl)
  const [kind, setKind] = useState<'gateway' | 'local'>(provider?.kind === 'local' ? 'local' : preset.kind)
  const [apiKey, setApiKey] = useState('')
  const [removesKey, setRemovesKey] = useState(false)
  const key = removesKey ? null : apiKey.trim() === '' ? undefined : apiKey.trim()
  const input = {
    ...{ name: name.trim(), kind, base_url: baseUrl.trim() },
    ...(key === undefined ? {} : { api_key: key }),
  } satisfies ProviderTestInput
  return {
    ...{ name: name.trim(), setName, baseUrl: baseUrl.trim(), setBaseUrl, kind, setKind },
    ...{ apiKey, setApiKey, removesKey, setRemovesKey, input, isStored },
  }
}

/** Suggests the preset's name, or one with a number if it is taken. */
function suggestName({ id }: ProviderPreset, takenNames: readonly string[]): string {
  if (id === otherServer.id) return ''
  const candidates = [id, ...Array.from({ length: 50 }, (_, index) => `${id}-${index + 2}`)]
  return candidates.find((candidate) => !takenNames.includes(candidate)) ?? ''
}
