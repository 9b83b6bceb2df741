/** A dialog above the page: named by its title, closed by Escape, and never taller than the window. */
import { CloseButton, Group, getDefaultZIndex, Modal, type ModalRootProps } from '@mantine/core'
import type { ReactNode } from 'react'
import { useEscape } from '../lib/use-escape.ts'

export interface DialogProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly size?: ModalRootProps['size']
  /** Stands above other dialogs, whichever was opened first. */
  readonly isAboveAll?: boolean
  readonly children: ReactNode
}

/**
 * The library's own head is a landmark of the page, which a dialog must not bring along. A large one hangs from the top, so that it
 * stays where it is while it grows.
 */
export function Dialog({ title, isOpen, onClose, size = 'md', isAboveAll = false, children }: DialogProps) {
  useEscape(isOpen, onClose)
  return (
    <Modal.Root
      opened={isOpen}
      onClose={onClose}
      size={size}
      zIndex={getDefaultZIndex(isAboveAll ? 'popover' : 'modal')}
      closeOnEscape={false}
      centered={size !== 'xl'}
    >
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Body>
          <Group justify="space-between" wrap="nowrap" mb="md">
            <Modal.Title fw={600}>{title}</Modal.Title>
            <CloseButton aria-label="Close" onClick={onClose} />
          </Group>
          {children}
        </Modal.Body>
      </Modal.Content>
    </Modal.Root>
  )
}
