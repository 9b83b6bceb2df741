/** Makes a parent key one's own that one knows: first what would move is shown, then it moves. */
import { Alert, List, PasswordInput, Stack, Text } from '@mantine/core'
import { useState } from 'react'
import { DialogForm } from '../components/Dialog.tsx'
import { renderCount } from '../format.ts'
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
    }
    return (
      <DialogForm onSubmit={claim} onCancel={onClose} action="Claim and move">
        <WhatMoves {...preview} />
      </DialogForm>
    )
  }
  const look = async () => setPreview(await previewClaim(key))
  return (
    <DialogForm onSubmit={look} onCancel={onClose} action="See what moves" isReady={key.trim() !== ''}>
      <PasswordInput
        label="Parent key"
        description="The whole key, from svc_ to its end. Whoever knows it may claim it, once."
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
    [artifacts, renderCount(artifacts, 'upload')],
    [calls, `${renderCount(calls, 'call')} of usage on ${renderCount(days, 'day')}`],
  ] as const
  const shown = lines.filter(([count]) => count > 0)
  return (
    <Stack gap="sm">
      <Text size="sm">
        The key{' '}
        <Text span ff="monospace" size="sm">
          {parentKey}
        </Text>{' '}
        becomes yours, and the one you work with.
      </Text>
      {shown.length === 0 ? (
        <Text size="sm">Nothing moves: your automatic key owns nothing.</Text>
      ) : (
        <Alert color="indigo" title="This moves to it from your automatic key">
          <List size="sm">
            {shown.map(([, line]) => (
              <List.Item key={line}>{line}</List.Item>
            ))}
          </List>
        </Alert>
      )}
      <Text size="sm" c="dimmed">
        Your automatic key ends with that. Keys of agents go on working.
      </Text>
    </Stack>
  )
}
