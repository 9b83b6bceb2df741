/** Accepts files to upload, by drag and drop or from a file chooser. */
import { Button, FileButton, Group, NativeSelect, Stack, Text, TextInput } from '@mantine/core'
import { type DragEvent, useState } from 'react'
import { Icon } from '../shell/icons.tsx'
import { findKind, kindNames } from './artifacts.ts'
import { addUpload } from './uploader.ts'

const kinds = [
  { value: '', label: 'Detect from file' },
  ...Object.entries(kindNames).map(([value, label]) => ({ value, label })),
]

export function DropZone() {
  const [kind, setKind] = useState('')
  const [name, setName] = useState('')
  const [isOver, setIsOver] = useState(false)
  const send = (files: readonly File[]) => {
    for (const file of files) void addUpload(file, { kind: findKind(kind), name: name.trim() })
    setName('')
  }
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    send([...event.dataTransfer.files])
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button inside does the same without dragging
    <div
      className="panel drop-zone"
      data-over={isOver}
      onDragOver={(event) => {
        event.preventDefault()
        setIsOver(true)
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      <Group justify="space-between" align="flex-end" gap="md">
        <Group gap="md" wrap="nowrap" className="drop-zone-words">
          <Icon name="uploads" size={28} />
          <Stack gap={2}>
            <Text fw={500}>Drop files here</Text>
            <Text size="sm" c="dimmed">
              or choose one or more files
            </Text>
          </Stack>
        </Group>
        <Group gap="sm" align="flex-end">
          <NativeSelect
            label="Kind"
            data={kinds}
            value={kind}
            onChange={(event) => setKind(event.currentTarget.value)}
          />
          <TextInput
            label="Name"
            placeholder="Same as the file"
            maxLength={512}
            value={name}
            autoComplete="off"
            onChange={(event) => setName(event.currentTarget.value)}
          />
          <FileButton multiple onChange={send} inputProps={{ 'aria-label': 'Files to upload' }}>
            {(props) => <Button {...props}>Choose files</Button>}
          </FileButton>
        </Group>
      </Group>
    </div>
  )
}
