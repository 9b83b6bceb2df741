/** Claims a parent key. First shows which data will move. */
import { Alert, List, PasswordInput, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/Dialog.tsx'
import { showDone } from '../shell/toast.tsx'
import { t } from '../strings/language.ts'
import { rich } from '../strings/rich.tsx'
import { type ClaimPreview, claimKey, previewClaim, useRefreshAll } from './NewKey.tsx'

export function ClaimKey({ onClose }: { readonly onClose: () => void }) {
  const [key, setKey] = useState('')
  const [preview, setPreview] = useState<ClaimPreview>()
  const refreshAll = useRefreshAll()
  if (preview !== undefined) {
    const claim = async () => {
      await claimKey(key)
      await refreshAll()
      onClose()
      showDone(t('keys.keyClaimed'))
    }
    return (
      <DialogForm onSubmit={claim} onCancel={onClose} action={t('keys.claimKey')}>
        <WhatMoves {...preview} />
      </DialogForm>
    )
  }
  const look = async () => setPreview(await previewClaim(key))
  return (
    <DialogForm
      onSubmit={look}
      onCancel={onClose}
      action={t('keys.previewClaim')}
      isReady={key.trim() !== ''}
    >
      <PasswordInput
        label={t('keys.parentKey')}
        description={t('keys.claimHelp')}
        placeholder="svc_…"
        data-autofocus
        autoComplete="off"
        value={key}
        onChange={(event) => setKey(event.currentTarget.value)}
      />
    </DialogForm>
  )
}

function WhatMoves({ parent_key: parentKey, moved }: ClaimPreview) {
  const { agents, files, artifacts, usage_calls: calls, usage_days: days } = moved
  const lines = [
    [agents, t('keys.movesAgents', { count: agents })],
    [files, t('keys.movesFiles', { count: files })],
    [artifacts, t('keys.movesArtifacts', { count: artifacts })],
    [
      calls,
      t('keys.movesUsage', {
        calls: t('keys.calls', { count: calls }),
        days: t('keys.days', { count: days }),
      }),
    ],
  ] as const
  const shown = lines.filter(([count]) => count > 0)
  return (
    <Stack gap="sm">
      <Text size="sm">
        {rich('keys.becomesYours', {
          key: (
            <Text span ff="monospace" size="sm">
              {parentKey}
            </Text>
          ),
        })}
      </Text>
      {shown.length === 0 ? (
        <Text size="sm">{t('keys.nothingMoves')}</Text>
      ) : (
        <Alert color="indigo" title={t('keys.moves')}>
          <List size="sm">
            {shown.map(([, line]) => (
              <List.Item key={line}>{line}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed">
        {t('keys.willBeRevoked')}
      </Text>
    </Stack>
  )
}
