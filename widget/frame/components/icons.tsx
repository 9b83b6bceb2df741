/** Draws the button icons in the text color, hidden from screen readers. */

function icon(...paths: readonly string[]) {
  return function Icon() {
    return (
      <svg viewBox="0 0 24 24" aria-hidden="true" className="icon">
        {paths.map((path) => (
          <path key={path} d={path} />
        ))}
      </svg>
    )
  }
}

export const SendIcon = icon('M12 19V5', 'M5 12l7-7 7 7')
export const PauseIcon = icon('M9 6v12', 'M15 6v12')
export const StopIcon = icon('M7 7h10v10H7z')
export const CloseIcon = icon('M6 6l12 12', 'M18 6L6 18')
export const MenuIcon = icon('M5.5 12h.01', 'M12 12h.01', 'M18.5 12h.01')
export const CopyIcon = icon('M9 9h10v10H9z', 'M5 15V5h10')
export const DoneIcon = icon('M5 12.5l4.5 4.5L19 7.5')
export const RetryIcon = icon('M4 12a8 8 0 1 0 2.6-5.9', 'M4 4v4.5h4.5')
export const InsertIcon = icon('M19 5v5a4 4 0 0 1-4 4H5', 'M9.5 9.5L5 14l4.5 4.5')
export const ShareIcon = icon('M12 15V4', 'M8 7.5L12 4l4 3.5', 'M6 11.5V20h12v-8.5')
export const NewIcon = icon('M12 5v14', 'M5 12h14')
export const ListIcon = icon('M12 7v5l3.5 2', 'M4 12a8 8 0 1 0 2.6-5.9', 'M4 4v4.5h4.5')
export const DeleteIcon = icon(
  'M5 7h14',
  'M10 7V4.5h4V7',
  'M7 7l.8 12.5h8.4L17 7',
  'M10.5 11v5',
  'M13.5 11v5',
)
export const MicIcon = icon(
  'M12 3.5a3 3 0 0 0-3 3V11a3 3 0 0 0 6 0V6.5a3 3 0 0 0-3-3z',
  'M5.5 11a6.5 6.5 0 0 0 13 0',
  'M12 17.5v3',
)
export const SpeakerIcon = icon(
  'M5 9.5v5h3.5L13 18.5v-13L8.5 9.5z',
  'M16 9a4.2 4.2 0 0 1 0 6',
  'M18.4 6.5a7.8 7.8 0 0 1 0 11',
)
export const PictureIcon = icon('M4.5 5h15v14h-15z', 'M4.5 16l4.5-4.5 3.5 3.5 2.5-2.5 4.5 4.5', 'M15 8.8h.01')
export const PersonIcon = icon(
  'M12 4.5a3.6 3.6 0 1 0 0 7.2a3.6 3.6 0 1 0 0-7.2',
  'M4.5 20a7.5 7.5 0 0 1 15 0',
)
export const GoodIcon = icon(
  'M8 10.5l3.5-7a2.4 2.4 0 0 1 2.4 2.4V9H19a1.6 1.6 0 0 1 1.6 1.9l-1.3 7A1.9 1.9 0 0 1 17.4 19.5H8z',
  'M8 10.5H4v9h4',
)
export const BadIcon = icon(
  'M16 13.5l-3.5 7a2.4 2.4 0 0 1-2.4-2.4V15H5a1.6 1.6 0 0 1-1.6-1.9l1.3-7A1.9 1.9 0 0 1 6.6 4.5H16z',
  'M16 13.5h4v-9h-4',
)
export const InfoIcon = icon('M12 4a8 8 0 1 0 0 16a8 8 0 1 0 0-16', 'M12 11.5v4.5', 'M12 8h.01')
export const AttachIcon = icon(
  'M19 11.5l-7 7a4.6 4.6 0 0 1-6.5-6.5l7.5-7.5a3 3 0 0 1 4.3 4.3L10 16a1.4 1.4 0 0 1-2-2l6.5-6.5',
)
export const FileIcon = icon('M6.5 3.5h7l4 4v13h-11z', 'M13.5 3.5v4h4')
export const EditIcon = icon('M4.5 19.5l1-4L16 5l3 3L8.5 18.5z', 'M13.5 7.5l3 3')
export const BackIcon = icon('M15 5l-7 7 7 7')
export const ExpandIcon = icon('M14 5h5v5', 'M10 19H5v-5', 'M19 5l-6 6', 'M5 19l6-6')
export const ShrinkIcon = icon('M20 10h-5.5V4.5', 'M4 14h5.5v5.5', 'M14.5 10L20 4.5', 'M9.5 14L4 19.5')
export const ForwardIcon = icon('M9 5l7 7-7 7')
export const DownIcon = icon('M12 5v14', 'M6 13l6 6 6-6')
export const WarnIcon = icon('M12 8v5', 'M12 16.5h.01', 'M12 3.5L2.8 19.5h18.4z')
export const ToolIcon = icon(
  'M14.5 5.5a4.2 4.2 0 0 0-5 5.6L4.5 16v3.5H8l4.9-5a4.2 4.2 0 0 0 5.6-5L15.8 12 12 8.2z',
)
