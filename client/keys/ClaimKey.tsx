/** Claims a parent key: previews the data that will move, then moves it. */
import { Alert, List, PasswordInput, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/Dialog.tsx'
import { renderCount } from '../format.ts'
import { showDone } from '../shell/toast.tsx'
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
      showDone('Key claimed')
    }
    return (
      <DialogForm onSubmit={claim} onCancel={onClose} action="Claim key">
        <WhatMoves {...preview} />
      </DialogForm>
    )
  }
  const look = async () => setPreview(await previewClaim(key))
  return (
    <DialogForm onSubmit={look} onCancel={onClose} action="Preview claim" isReady={key.trim() !== ''}>
      <PasswordInput
        label="Parent key"
        description="The full key, which starts with svc_. A key can be claimed only once."
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
    [agents, renderCount(agents, 'agent')],
    [files, renderCount(files, 'file')],
    [artifacts, renderCount(artifacts, 'artifact')],
    [calls, `Usage of ${renderCount(calls, 'call')} on ${renderCount(days, 'day')}`],
  ] as const
  const shown = lines.filter(([count]) => count > 0)
  return (
    <Stack gap="sm">
      <Text size="sm">
        The key{' '}
        <Text span ff="monospace" size="sm">
          {parentKey}
        </Text>{' '}
        becomes yours and your active key.
      </Text>
      {shown.length === 0 ? (
        <Text size="sm">Nothing moves, because your automatic key owns nothing.</Text>
      ) : (
        <Alert color="indigo" title="Moves from your automatic key">
          <List size="sm">
            {shown.map(([, line]) => (
              <List.Item key={line}>{line}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed">
        Your automatic key will be revoked. Agent keys remain valid.
      </Text>
    </Stack>
  )
}
