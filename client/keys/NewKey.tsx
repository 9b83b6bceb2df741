/** Creates and rotates keys, and shows each new key. */
import { NativeSelect, TextInput } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/Dialog.tsx'
import './keys.css'
import { Alert, Button, Group, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { api } from '../api.ts'
import { CodeBlock } from '../components/CopyButton.tsx'
import { renderMoment } from '../format.ts'
import { Icon } from '../shell/icons.tsx'
import { t } from '../strings/language.ts'

export function CreateKey({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('')
  const [made, setMade] = useState<NewKey>()
  const refreshAll = useRefreshAll()
  if (made !== undefined) return <NewKeyNotice made={made} isShownOnce onClose={onClose} />
  const create = async () => {
    setMade(await createKey(name))
    await refreshAll()
  }
  return (
    <DialogForm onSubmit={create} onCancel={onClose} action={t('common.create')} isReady={name.trim() !== ''}>
      <TextInput
        label={t('keys.name')}
        description={t('keys.nameHelp')}
        placeholder={t('keys.namePlaceholder')}
        data-autofocus
        maxLength={200}
        autoComplete="off"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
    </DialogForm>
  )
}

const overlaps = [
  { value: '0', label: t('keys.overlapNone') },
  { value: '3600', label: t('keys.overlapHour') },
  { value: '86400', label: t('keys.overlapDay') },
  { value: '604800', label: t('keys.overlapWeek') },
  { value: '2592000', label: t('keys.overlapMonth') },
]

interface RotateKeyProps {
  readonly rotate: (overlapSeconds: number) => Promise<NewKey>
  /** True if the new secret cannot be read again later. */
  readonly isShownOnce: boolean
  readonly onClose: () => void
}

export function RotateKey({ rotate, isShownOnce, onClose }: RotateKeyProps) {
  const [overlap, setOverlap] = useState('86400')
  const [made, setMade] = useState<NewKey>()
  const refreshAll = useRefreshAll()
  if (made !== undefined) return <NewKeyNotice made={made} isShownOnce={isShownOnce} onClose={onClose} />
  const submit = async () => {
    setMade(await rotate(Number(overlap)))
    await refreshAll()
  }
  return (
    <DialogForm
      onSubmit={submit}
      onCancel={onClose}
      action={t('keys.rotateKey')}
      isDangerous={overlap === '0'}
    >
      <NativeSelect
        label={t('keys.currentKey')}
        description={t('keys.currentKeyHelp')}
        data={overlaps}
        value={overlap}
        onChange={(event) => setOverlap(event.currentTarget.value)}
      />
    </DialogForm>
  )
}

interface NewKeyNoticeProps {
  readonly made: NewKey
  /** True if the key cannot be read again later. */
  readonly isShownOnce: boolean
  readonly onClose: () => void
}

function NewKeyNotice({ made, isShownOnce, onClose }: NewKeyNoticeProps) {
  return (
    <Stack gap="md">
      {isShownOnce ? (
        <Alert color="yellow" icon={<Icon name="warning" />} title={t('keys.copyNow')}>
          {t('keys.shownOnce')}
        </Alert>
      ) : null}
      <div className="new-key">
        <CodeBlock code={made.key} what={t('keys.newKey')} />
      </div>
      {made.previousValidUntil === undefined ? null : (
        <Text size="sm">
          {made.previousValidUntil * 1_000 <= Date.now()
            ? t('keys.previousStopped')
            : t('keys.previousUntil', { when: renderMoment(made.previousValidUntil) })}
        </Text>
      )}
      <Group justify="flex-end">
        <Button onClick={onClose}>{isShownOnce ? t('keys.haveCopied') : t('common.done')}</Button>
      </Group>
    </Stack>
  )
}

/** A key that was just created or rotated. */
export interface NewKey {
  readonly key: string
  /** Unix seconds until which the previous secret remains valid. */
  readonly previousValidUntil?: number
}

/** Refetches all data, because nearly all of it belongs to a key. */
export function useRefreshAll(): () => Promise<void> {
  const queries = useQueryClient()
  return () => queries.invalidateQueries()
}

async function createKey(name: string): Promise<NewKey> {
  return { key: (await api.manager.createKey.mutate({ name })).key }
}

/** Rotates a parent key; the previous secret remains valid for `overlapSeconds`. */
export async function rotateParentKey(id: string, overlapSeconds: number): Promise<NewKey> {
  const answer = await api.manager.rotateKey.mutate({ parent_key_id: id, overlap_seconds: overlapSeconds })
  return { key: answer.key, previousValidUntil: answer.previous_valid_until }
}

/** Rotates an agent's key; the previous secret remains valid for `overlapSeconds`. */
export async function rotateAgentKey(id: string, overlapSeconds: number): Promise<NewKey> {
  const answer = await api.agents.rotateKey.mutate({ agent_id: id, overlap_seconds: overlapSeconds })
  return { key: answer.agent_key, previousValidUntil: answer.previous_valid_until }
}

export function revokeKey(id: string) {
  return api.manager.revokeKey.mutate({ parent_key_id: id })
}

export function previewClaim(key: string) {
  return api.manager.previewClaim.mutate({ parent_key: key })
}

export function claimKey(key: string) {
  return api.manager.claimKey.mutate({ parent_key: key })
}

export type ClaimPreview = Awaited<ReturnType<typeof previewClaim>>
