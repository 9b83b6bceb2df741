/** An upload that a reload interrupted: with the same file it goes on where it was. */
import { Button, FileButton, Group, Progress, Stack, Text } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { renderShare, renderSize } from '../lib/format-size.ts'
import { findKind } from './kinds.ts'
import { addUpload, forgetUnfinished, type UnfinishedUpload } from './uploader.ts'

export function UnfinishedRow({ upload }: { readonly upload: UnfinishedUpload }) {
  const { filename, sizeBytes, sentBytes, stored } = upload
  const [problem, setProblem] = useState<string>()
  const goOn = (file: File | null) => {
    if (file === null) return
    if (file.name !== filename || file.size !== sizeBytes) {
      setProblem(`That is another file: ${filename} with ${renderSize(sizeBytes)} was begun.`)
      return
    }
    void addUpload(file, { kind: findKind(stored.metadata.kind ?? ''), name: stored.metadata.name })
  }
  const share = sentBytes / sizeBytes
  return (
    <Group className="sending-row" gap="md">
      <Stack gap={4} className="sending-words">
        <Group justify="space-between" gap="xs">
          <Text size="sm" fw={500} className="break-words">
            <bdi>{filename}</bdi>
          </Text>
          <Text size="xs" c="dimmed">
            Interrupted at {renderShare(share)} of {renderSize(sizeBytes)}
          </Text>
        </Group>
        <Progress value={share * 100} color="gray" aria-label={`Sent of ${filename}`} />
        {problem === undefined ? null : (
          <Text size="xs" c="var(--parley-bad)" role="alert">
            {problem}
          </Text>
        )}
      </Stack>
      <Group gap="xs" wrap="nowrap">
        <FileButton onChange={goOn} inputProps={{ 'aria-label': `The file ${filename}` }}>
          {(props) => (
            <Button {...props} size="xs">
              Choose the file again
            </Button>
          )}
        </FileButton>
        <Forget upload={upload} />
      </Group>
    </Group>
  )
}

function Forget({ upload }: { readonly upload: UnfinishedUpload }) {
  const queries = useQueryClient()
  const { mutate, isPending } = useMutation({
    mutationFn: () => forgetUnfinished(upload),
    onSettled: () => queries.invalidateQueries(),
  })
  return (
    <Button size="xs" variant="default" loading={isPending} onClick={() => mutate()}>
      Give up
    </Button>
  )
}
